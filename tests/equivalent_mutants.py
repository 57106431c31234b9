"""Changes of official solutions that change nothing, each with the reason.

{chapter: {"the line | what was changed": why the result is the same}}
"""

EQUIVALENT = {}

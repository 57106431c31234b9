"""What a teacher takes: questions, slides, exams and the calendar. See course/README.md."""

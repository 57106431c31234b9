// The training's own thread. Messages in: {restart: {task, positions, seed, rate, number}}, {rate},
// {run: true or false}, {every: milliseconds between two reports}. Out: {number, snapshot, running,
// losses: [[update, loss], ...] since the last report, ms: milliseconds an update took}, or {error}.

import { LAST, Run } from "./train_run.js";

const TURN = 30; // milliseconds of work between two looks at the messages
const GROUP = 10; // updates whose mean loss is one point of the curve

let [run, number] = [null, 0];
let [running, looping, every] = [false, false, 150];
let [losses, group, spent, done] = [[], [], 0, 0];

function step() {
  const began = performance.now();
  group.push(run.step());
  spent += performance.now() - began;
  done += 1;
  if (group.length < GROUP && run.update > 1) return;
  losses.push([run.update, group.reduce((a, b) => a + b) / group.length]);
  group = [];
}

function report() {
  const ms = done ? spent / done : null;
  postMessage({ number, snapshot: run.snapshot(), losses, running, ms });
  losses = [];
}

async function loop() {
  if (looping) return;
  looping = true;
  let told = performance.now();
  while (running) {
    const until = performance.now() + TURN;
    while (performance.now() < until && run.update < LAST) step();
    if (run.update >= LAST) running = false;
    if (!running || performance.now() - told > every) {
      report();
      told = performance.now();
    }
    await new Promise((resolve) => setTimeout(resolve)); // messages come in here
  }
  looping = false;
}

onmessage = ({ data }) => {
  try {
    if (data.every) every = data.every;
    if (data.restart) {
      [run, number] = [new Run(data.restart), data.restart.number];
      [losses, group, spent, done] = [[], [], 0, 0];
      report();
    }
    if (data.rate) run.rate = data.rate;
    if (data.run !== undefined) {
      running = data.run && run.update < LAST;
      if (running) loop();
      else report();
    }
  } catch (error) {
    postMessage({ error: error.message });
  }
};

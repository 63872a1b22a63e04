// How long a tick takes: `npm run bench`. In memory, because disks differ.

import { Device, MemoryStorage } from '../dist/index.js';
import { kinds, servers, taskOf } from '../test/tasks.mjs';

const TICKS = 200;
const WARM = 20;

const cases = {
  'count, one server': {},
  'histogram to 2, one server': { kind: kinds.histogram },
  'histogram to 10, one server': { kind: { ...kinds.histogram, most: 10 } },
  'mean to 10, one server': { kind: { ...kinds.mean, most: 10, variance: '10000' } },
  'count, two servers': { key: servers() },
  'histogram to 2, two servers': { kind: kinds.histogram, key: servers() },
};

for (const [name, changes] of Object.entries(cases)) {
  const task = taskOf({ horizon: TICKS + WARM, ...changes });
  const device = await Device.open(task, new MemoryStorage());
  const times = [];
  for (let i = 0; i < TICKS + WARM; i++) {
    const begun = performance.now();
    await device.observe(i % 7 === 0);
    if (i >= WARM) times.push(performance.now() - begun);
  }
  times.sort((one, other) => one - other);
  const [middle, late] = [0.5, 0.95].map((share) => times[Math.floor(TICKS * share)].toFixed(1));
  console.log(`${name.padEnd(30)} ${middle.padStart(6)} ms   ${late.padStart(6)} ms for 19 of 20`);
}

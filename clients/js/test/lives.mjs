// Lives of devices, for the Python package: one JSON line in, one out; states are hexadecimal.
// {task, signer, state, events, report, seed?} -> {state, report} or {error}

import { createInterface } from 'node:readline';

import { Device, MemoryStorage, Task } from '../dist/index.js';
import { seededCoins } from './seeded.mjs';

const bytes = (text) => new Uint8Array(Buffer.from(text, 'hex'));
const text = (data) => Buffer.from(data).toString('hex');
const tasks = new Map();

function taskOf({ task, signer }) {
  if (!tasks.has(task)) tasks.set(task, Task.read(bytes(task), bytes(signer)));
  return tasks.get(task);
}

async function live(asked) {
  const storage = new MemoryStorage();
  if (asked.state) await storage.replace(null, bytes(asked.state));
  const coins = asked.seed === undefined ? undefined : seededCoins(asked.seed);
  const device = await Device.open(taskOf(asked), storage, coins);
  const states = [text(await storage.read())];
  for (const event of asked.events) {
    await device.observe(event);
    states.push(text(await storage.read()));
  }
  const report = asked.report ? text(await device.report()) : null;
  return { states, report };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await live(JSON.parse(line)).catch(({ name, message }) => ({ error: `${name}: ${message}` }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

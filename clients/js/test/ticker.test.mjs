import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Device, MemoryStorage, PlanError, Ticker } from '../dist/index.js';
import { kinds, opened, rowOf, taskOf } from './tasks.mjs';

const started = async (kind, now) => {
  const storage = new MemoryStorage();
  const device = await Device.open(taskOf({ kind, horizon: 4 }), storage);
  return { storage, device, ticker: new Ticker(device, { start: 1000, every: 10 }, now) };
};

test('a tick is observed when the clock says that it is over', async () => {
  let time = 990;
  const { storage, device, ticker } = await started(kinds.histogram, () => time);
  assert.equal(await ticker.pass(), false);
  assert.equal(device.tick, 0);
  time = 1009;
  ticker.event();
  ticker.event(); // counts once
  await ticker.pass();
  assert.equal(device.tick, 0);
  time = 1031; // two more are over: the one after it without an event
  ticker.event();
  await ticker.pass();
  assert.equal(device.tick, 3);
  assert.deepEqual(opened(rowOf(await storage.read())).slice(0, 3), [0, 1, 0]);
  time = 5000;
  assert.equal(await ticker.pass(), true);
  assert.equal(device.tick, 4);
  assert.deepEqual(opened(rowOf(await storage.read())).slice(0, 3), [0, 0, 1]);
  await device.report();
  assert.equal(await ticker.pass(), true);
});

test('a schedule without ticks is refused', async () => {
  const { device } = await started(kinds.count, Date.now);
  for (const schedule of [{ start: 0, every: 0 }, { start: NaN, every: 1 }, { start: 0, every: -1 }]) {
    assert.throws(() => new Ticker(device, schedule), PlanError);
  }
});

test('an event outside of the ticks that run does not count, and is not kept', async () => {
  let time = 500;
  const { storage, device, ticker } = await started(kinds.histogram, () => time);
  ticker.event(); // before the first tick
  time = 1025;
  await ticker.pass();
  time = 1005; // the clock was set back to a tick that is over
  ticker.event();
  time = 1041;
  ticker.event(); // after the last one
  assert.equal(await ticker.pass(), true);
  assert.equal(device.tick, 4);
  assert.deepEqual(opened(rowOf(await storage.read())).slice(0, 3), [1, 0, 0]);
});

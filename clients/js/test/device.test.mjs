import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Device, InputError, MemoryStorage, PlanError } from '../dist/index.js';
import { FileStorage } from '../dist/file-storage.js';
import { kinds, opened, rowOf, servers, taskOf } from './tasks.mjs';

const run = async (task, events) => {
  const storage = new MemoryStorage();
  const device = await Device.open(task, storage);
  const states = [await storage.read()];
  for (const event of events) {
    await device.observe(event);
    states.push(await storage.read());
  }
  return { storage, device, states };
};

test('the key opens what was observed', async () => {
  const rows = {
    count: [[1], [0]],
    histogram: [[0, 0, 1, 1, 1, 1], [1, 0, 0, 1, 0, 0]],
    mean: [[1, 1], [0, 0]],
  };
  for (const [name, expected] of Object.entries(rows)) {
    const task = taskOf({ kind: kinds[name] });
    for (const [i, events] of [[true, false, true], [false, false, false]].entries()) {
      const { states } = await run(task, events);
      assert.deepEqual(opened(rowOf(states.at(-1))), expected[i], name);
    }
  }
});

test('states of any two inputs have equal lengths, and no ciphertext comes twice', async () => {
  for (const key of [undefined, servers(), servers('none')]) {
    const task = taskOf({ kind: kinds.histogram, ...(key && { key }) });
    const lives = await Promise.all(
      [[true, true, true], [false, false, false]].map((events) => run(task, events)),
    );
    const [one, other] = lives.map(({ states }) => states);
    assert.deepEqual(one.map((each) => each.length), other.map((each) => each.length));
    const points = [...one, ...other].flatMap((state) => {
      const row = Buffer.from(rowOf(state)).toString('hex');
      return row.match(/.{66}/g);
    });
    assert.equal(new Set(points).size, points.length);
  }
});

test('a report is made once, and is the same bytes when it is asked again', async () => {
  for (const [kind, key] of [['count'], ['histogram'], ['mean'], ['count', servers()]]) {
    const task = taskOf({ kind: kinds[kind], ...(key && { key }) });
    const { device, storage } = await run(task, [true, false, false]);
    const report = await device.report();
    const again = await Device.open(task, storage);
    assert.ok(again.reported);
    assert.deepEqual(await again.report(), report);
    await assert.rejects(again.observe(false), PlanError);
    assert.equal(report.length, 53 + task.kind.answers * task.entryBytes);
  }
});

test('ticks that are missing are refused, and so is one too many', async () => {
  const { device } = await run(taskOf(), [false, true]);
  await assert.rejects(device.report(), /ticks are missing/);
  await device.observe(false);
  await assert.rejects(device.observe(true), /all ticks of the task are over/);
});

test('what is observed is true or false', async () => {
  const { device } = await run(taskOf(), []);
  for (const event of [1, 0, 'true', null, undefined]) {
    await assert.rejects(device.observe(event), PlanError);
  }
  assert.equal(device.tick, 0);
});

test('a tick that is not stored is lost, and nothing else', async () => {
  const task = taskOf();
  const storage = new MemoryStorage();
  const failing = {
    read: () => storage.read(),
    replace: async (before, state) => {
      if (state[38] === 2) throw new Error('the disk is full');
      await storage.replace(before, state);
    },
  };
  const device = await Device.open(task, failing);
  await device.observe(true);
  await assert.rejects(device.observe(false), /disk is full/);
  assert.equal(device.tick, 1);
  const again = await Device.open(task, storage);
  assert.equal(again.tick, 1);
  assert.deepEqual(opened(rowOf(await storage.read())), [1]);
});

test('two programs are not one device', async () => {
  const task = taskOf();
  const { device, storage } = await run(task, [false]);
  const other = await Device.open(task, storage);
  await other.observe(true);
  await assert.rejects(device.observe(false), /another program has changed the state/);
  await assert.rejects(device.observe(false), PlanError);
  assert.equal((await Device.open(task, storage)).tick, 2);
});

test('one call is made at a time', async () => {
  const { device } = await run(taskOf(), []);
  const first = device.observe(true);
  await assert.rejects(device.observe(false), /not through yet/);
  await first;
  assert.equal(device.tick, 1);
});

test('a state of another task, and a damaged one, are refused; nothing is changed', async () => {
  const task = taskOf();
  const { states } = await run(task, [true]);
  const state = states.at(-1);
  const wrong = {
    'another task': [taskOf(), state],
    'another version': [task, changedAt(state, 4, 2)],
    'no state of a device': [task, changedAt(state, 0, 0)],
    damaged: [task, changedAt(state, 38, 9)],
    'no point': [task, changedAt(state, 62, 4)],
  };
  for (const [reason, found] of Object.entries(wrong)) {
    const storage = new MemoryStorage();
    await storage.replace(null, found[1]);
    await assert.rejects(Device.open(found[0], storage), (error) => {
      assert.ok(error instanceof InputError);
      assert.match(error.message, new RegExp(reason));
      return true;
    });
    assert.deepEqual(await storage.read(), found[1]);
  }
  const short = new MemoryStorage();
  await short.replace(null, state.slice(0, -1));
  await assert.rejects(Device.open(task, short), InputError);
});

test('every second x is of no point: those states are refused', async () => {
  const task = taskOf();
  const { states } = await run(task, [false]);
  let refused = 0;
  for (let i = 0; i < 40; i++) {
    const changed = changedAt(states.at(-1), 70 + (i % 20), i);
    const storage = new MemoryStorage();
    await storage.replace(null, changed);
    refused += await Device.open(task, storage).then(() => 0, () => 1);
  }
  assert.ok(refused > 5 && refused < 35, `${refused} of 40`); // binomial(40, 1/2): 1e-6
});

test('a device goes on from a file, which its owner alone can read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'device-'));
  const path = join(folder, 'phone');
  const task = taskOf();
  const device = await Device.open(task, new FileStorage(path));
  await device.observe(true);
  const again = await Device.open(task, new FileStorage(path));
  assert.equal(again.tick, 1);
  await again.observe(false);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.deepEqual(opened(rowOf(new Uint8Array(await readFile(path)))), [1]);
  await assert.rejects(device.observe(false), /another program/);
  await rm(folder, { recursive: true });
});

function changedAt(state, at, byte) {
  const changed = state.slice();
  changed[at] = byte;
  return changed;
}

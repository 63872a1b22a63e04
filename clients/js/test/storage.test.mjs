import assert from 'node:assert/strict';
import { test } from 'node:test';

import { IDBDatabase, IDBFactory } from 'fake-indexeddb';

import { Device, IndexedDBStorage, PlanError } from '../dist/index.js';
import { opened, rowOf, taskOf } from './tasks.mjs';

test('a device goes on from IndexedDB', async () => {
  const factory = new IDBFactory();
  const task = taskOf();
  const first = await IndexedDBStorage.open('device', factory);
  assert.equal(await first.read(), null);
  const device = await Device.open(task, first);
  await device.observe(true);
  first.close();
  const second = await IndexedDBStorage.open('device', factory);
  const again = await Device.open(task, second);
  assert.equal(again.tick, 1);
  assert.deepEqual(opened(rowOf(await second.read())), [1]);
});

test('a tick is one transaction that writes', async (t) => {
  const factory = new IDBFactory();
  const storage = await IndexedDBStorage.open('device', factory);
  const device = await Device.open(taskOf(), storage);
  const made = t.mock.method(IDBDatabase.prototype, 'transaction');
  for (const event of [true, false]) await device.observe(event);
  const modes = made.mock.calls.map((call) => call.arguments[1]);
  assert.deepEqual(modes, ['readwrite', 'readwrite']);
});

test('a state that another tab changed is left as it is', async () => {
  const factory = new IDBFactory();
  const task = taskOf();
  const tabs = await Promise.all(['one', 'other'].map(() => IndexedDBStorage.open('device', factory)));
  const one = await Device.open(task, tabs[0]);
  const other = await Device.open(task, tabs[1]);
  await one.observe(true);
  const state = await tabs[0].read();
  await assert.rejects(other.observe(false), PlanError);
  assert.deepEqual(await tabs[0].read(), state);
});

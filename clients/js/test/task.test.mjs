import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Device, InputError, MemoryStorage, Task } from '../dist/index.js';
import { document, kinds, servers, signed, signer, taskOf } from './tasks.mjs';

const other = '03' + 'f'.repeat(64);

test('a task that somebody else signed is refused', () => {
  const file = signed(document());
  assert.throws(() => Task.read(file, new Uint8Array(32).fill(1)), /not signed by the one/);
  assert.throws(() => Task.read(file, new Uint8Array(31)), /not signed by the one/);
  assert.throws(() => Task.read(signed(document(), new Uint8Array(32)), signer), /not signed/);
});

test('each change of a signed task is noticed', () => {
  const file = JSON.parse(signed(document({ kind: kinds.histogram, key: servers() })));
  const changes = [
    (task) => (task.horizon += 1),
    (task) => (task.id = '00'.repeat(16)),
    (task) => (task.key.leader = other),
    (task) => (task.key.collusion = 'none'),
    (task) => (task.kind.epsilon_0 = '1/2'),
    (task) => (task.promise.epsilon = '2'),
    (task) => delete task.promise.devices,
  ];
  for (const change of changes) {
    const changed = structuredClone(file);
    change(changed.task);
    assert.throws(() => Task.read(Buffer.from(JSON.stringify(changed)), signer), /not signed/);
  }
});

test('values out of range are refused, also where they are signed', () => {
  const wrong = [
    { version: 2 },
    { id: 'AB'.repeat(16) },
    { horizon: 0 },
    { horizon: 2 ** 31 + 1 },
    { horizon: 1.5 },
    { horizon: '3' },
    { key: 'ab' },
    { key: { ...servers(), helper: servers().leader } },
    { key: { ...servers(), collusion: 'both' } },
    { key: { ...servers(), batch: 0 } },
    { key: servers(), kind: kinds.mean },
    { kind: { kind: 'median' } },
    { kind: { ...kinds.histogram, most: 1001 } },
    { kind: { ...kinds.count, most: 3 } },
    { kind: { ...kinds.count, epsilon_0: 1 } },
    { kind: { ...kinds.count, epsilon_0: '1/0' } },
    { kind: { ...kinds.count, epsilon_0: '-1' } },
    { kind: { ...kinds.mean, variance: '1/1000' } },
    { promise: { epsilon: '101' } },
    { promise: { epsilon: '0' } },
    { promise: { epsilon: '1', delta: '1' } },
    { promise: { epsilon: '1', devices: 0 } },
    { more: 1 },
  ];
  for (const changes of wrong) {
    assert.throws(() => Task.read(signed(document(changes)), signer), InputError, JSON.stringify(changes));
  }
});

test('what is no document is refused', () => {
  for (const file of ['', '[]', '{}', '{"task":1,"signature":""}', 'null', ' '.repeat(70_000), '\xff']) {
    assert.throws(() => Task.read(Buffer.from(file, 'latin1'), signer), InputError);
  }
});

test('a task whose noise breaks its promise is refused', () => {
  const broken = [
    { kind: { ...kinds.count, epsilon_0: '1025/1024' } },
    { kind: { ...kinds.histogram, epsilon_0: '2' } },
    { kind: { ...kinds.mean, variance: '1' }, promise: { delta: '1/1000000', epsilon: '1' } },
    { kind: kinds.mean, promise: { delta: '0', epsilon: '1' } },
  ];
  for (const changes of broken) {
    assert.throws(() => taskOf(changes), /does not keep its promise/);
  }
});

test('a key that is no point is refused before anything is stored', async () => {
  const bad = { ...servers(), helper: '02' + 'f'.repeat(64) };
  for (const key of ['02' + 'f'.repeat(64), '04' + '1'.repeat(64), bad]) {
    const storage = new MemoryStorage();
    await assert.rejects(Device.open(taskOf({ key }), storage), /no point/);
    assert.equal(await storage.read(), null);
  }
});

test('an error shows nothing of the file', () => {
  const task = document({ kind: { ...kinds.count, epsilon_0: 'canary' } });
  assert.throws(() => Task.read(signed(task), signer), (error) => !/canary/.test(error.message));
});

test('decimals are read exactly', () => {
  const task = taskOf({ kind: { ...kinds.count, epsilon_0: '0.25' } });
  assert.equal(String(task.kind.epsilon0), '1/4');
  assert.match(task.canonical(), /"epsilon_0":"1\/4"/);
});

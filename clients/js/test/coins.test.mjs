import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ByteCoins, Device, Fraction, MemoryStorage, PlanError, systemCoins } from '../dist/index.js';
import { taskOf } from './tasks.mjs';

test('without WebCrypto a device is refused', async (t) => {
  const task = taskOf();
  const { crypto } = globalThis;
  t.after(() => Object.defineProperty(globalThis, 'crypto', { value: crypto, configurable: true }));
  for (const value of [undefined, {}]) {
    Object.defineProperty(globalThis, 'crypto', { value, configurable: true });
    assert.throws(systemCoins, PlanError);
    await assert.rejects(Device.open(task, new MemoryStorage()), /there is no WebCrypto/);
  }
});

// A coin of a bias of 30 % more would be found with a probability above 1 - 1e-6.
test('coins have their probability', () => {
  const coins = systemCoins();
  for (const [top, bottom] of [[1, 3], [1, 256], [255, 256], [1, 65_536 * 16]]) {
    const size = 200_000;
    const ones = coins.bernoulli(new Fraction(top, bottom), size).reduce((sum, bit) => sum + bit, 0);
    const mean = (size * top) / bottom;
    const reach = 5 * Math.sqrt(mean * (1 - top / bottom)) + 12; // 1e-6, by Bernstein
    assert.ok(Math.abs(ones - mean) < reach, `${ones} for ${mean}`);
  }
  assert.deepEqual([...coins.bernoulli(new Fraction(1), 3)], [1, 1, 1]);
  assert.deepEqual([...coins.bernoulli(new Fraction(0), 3)], [0, 0, 0]);
});

test('noise has its variance', () => {
  const coins = systemCoins();
  for (const variance of [4, 200]) {
    const size = 20_000;
    const drawn = Array.from({ length: size }, () => Number(coins.discreteGaussian(new Fraction(variance))));
    const mean = drawn.reduce((sum, each) => sum + each, 0) / size;
    const square = drawn.reduce((sum, each) => sum + each ** 2, 0) / size;
    assert.ok(Math.abs(mean) < 5 * Math.sqrt(variance / size)); // 6e-7
    assert.ok(Math.abs(square / variance - 1) < 5 * Math.sqrt(2 / size)); // so is 1.3 refused
  }
});

test('more bytes than WebCrypto gives at once are drawn in pieces', () => {
  const drawn = systemCoins().secret(200_000);
  const last = drawn.subarray(-1000);
  assert.ok(last.some((byte) => byte !== 0));
});

test('a nonce that is no scalar is drawn again', async () => {
  let calls = 0;
  const coins = new ByteCoins(() => (size) => {
    calls += 1;
    return calls === 1 ? new Uint8Array(size).fill(255) : crypto.getRandomValues(new Uint8Array(size));
  });
  await Device.open(taskOf(), new MemoryStorage(), coins);
  assert.equal(calls, 3); // a nonce that is too large, another one, and the report's name
});

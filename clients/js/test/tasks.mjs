// Signed tasks, and the secret keys that open what devices hold.

import { randomBytes } from 'node:crypto';

import { ed25519 } from '@noble/curves/ed25519.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';

import { Task } from '../dist/index.js';

const text = (bytes) => Buffer.from(bytes).toString('hex');

export const secret = randomBytes(32);
secret[0] = 1; // below the order
export const helperSecret = randomBytes(32);
helperSecret[0] = 2;
export const key = text(secp256k1.getPublicKey(secret));
export const servers = (collusion = 'one-server') => ({
  batch: 1,
  collusion,
  helper: text(secp256k1.getPublicKey(helperSecret)),
  leader: key,
});
export const kinds = {
  count: { epsilon_0: '1', kind: 'count-nonzero' },
  histogram: { epsilon_0: '1', kind: 'histogram', most: 2 },
  mean: { kind: 'mean', most: 2, variance: '200' },
};

const signing = ed25519.keygen();
export const signer = signing.publicKey;

// Names of a document in order, as a task is signed.
export function canonical(value) {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const pairs = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${pairs.join(',')}}`;
}

export function document(changes = {}) {
  return {
    horizon: 3,
    id: randomBytes(16).toString('hex'),
    key,
    kind: kinds.count,
    promise: { delta: changes.kind?.kind === 'mean' ? '1/1000' : '0', devices: 1, epsilon: '1' },
    version: 1,
    ...changes,
  };
}

export function signed(task, by = signing.secretKey) {
  const signature = ed25519.sign(Buffer.from(`panprivacy task\n${canonical(task)}`), by);
  return Buffer.from(JSON.stringify({ task, signature: text(signature) }));
}

export const taskOf = (changes = {}) => Task.read(signed(document(changes)), signer);

// Values of ciphertexts of 0 to 9; -1 for others.
export function opened(row, by = secret) {
  const { Point } = secp256k1;
  const scalar = Point.Fn.fromBytes(by);
  const found = [];
  for (let at = 0; at < row.length; at += 66) {
    const [first, second] = [row.slice(at, at + 33), row.slice(at + 33, at + 66)];
    let left = Point.fromBytes(second).subtract(Point.fromBytes(first).multiply(scalar));
    let value = 0;
    while (!left.is0() && value < 10) [left, value] = [left.subtract(Point.BASE), value + 1];
    found.push(left.is0() ? value : -1);
  }
  return found;
}

export const rowOf = (state) => state.slice(62);

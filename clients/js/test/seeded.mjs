// Coins that repeat, as those of `panprivacy.testing`: each call has a stream of its own.

import { createCipheriv, createHash } from 'node:crypto';

import { ByteCoins } from '../dist/index.js';

export function seededCoins(seed) {
  let calls = 0;
  return new ByteCoins(() => {
    calls += 1;
    const key = createHash('sha256').update(`panprivacy.testing ${seed} ${calls}`).digest();
    const stream = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
    return (size) => new Uint8Array(stream.update(Buffer.alloc(size)));
  });
}

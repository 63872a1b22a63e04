/* A state in a file, for Node. The Python package reads and writes the same. */

import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

import { checkSame, type Storage } from './storage.js';

/**
 * A file that its owner alone can read.
 *
 * Nothing locks it: keep it to one program. Another one's change is noticed at the next tick.
 */
export class FileStorage implements Storage {
  constructor(readonly path: string) {}

  async read(): Promise<Uint8Array | null> {
    try {
      return new Uint8Array(await readFile(this.path));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async replace(before: Uint8Array | null, state: Uint8Array): Promise<void> {
    checkSame(await this.read(), before);
    const unfinished = `${this.path}.new`;
    await rm(unfinished, { force: true }); // of a crash
    const file = await open(unfinished, 'wx', 0o600);
    try {
      await file.writeFile(state);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, this.path);
    const folder = await open(dirname(this.path), 'r');
    await folder.sync().finally(() => folder.close());
  }
}

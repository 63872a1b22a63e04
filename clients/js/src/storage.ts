/* Storage of a device's state, which is replaced as a whole. */

import { equal } from './bytes.js';
import { PlanError } from './errors.js';

/** Keeps one state. */
export interface Storage {
  /** Return the state that was written last; null if there is none. */
  read(): Promise<Uint8Array | null>;
  /**
   * Put a state in the place of the one before, in one step; it is stored when this resolves.
   *
   * @throws PlanError if what is stored is not `before`: another program is this device too.
   */
  replace(before: Uint8Array | null, state: Uint8Array): Promise<void>;
}

/** Throw `PlanError` if what is stored is not what this device stored. */
export function checkSame(found: Uint8Array | null, before: Uint8Array | null): void {
  const same = found === null || before === null ? found === before : equal(found, before);
  if (!same) {
    throw new PlanError('another program has changed the state: a device is one program; open it again');
  }
}

/** A state in memory, for tests. */
export class MemoryStorage implements Storage {
  #state: Uint8Array | null = null;

  async read(): Promise<Uint8Array | null> {
    return this.#state?.slice() ?? null;
  }

  async replace(before: Uint8Array | null, state: Uint8Array): Promise<void> {
    checkSame(this.#state, before);
    this.#state = state.slice();
  }
}

const STORE = 'device';
const STATE = 'state';

/**
 * A state in IndexedDB, which each tick replaces in one transaction.
 *
 * Chromium may keep older states on the disk for some time; the guarantee covers an intruder who
 * sees all of them.
 */
export class IndexedDBStorage implements Storage {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
  }

  /**
   * Open the storage of one device.
   *
   * @param name of the database: give each task of a device one of its own.
   * @param factory stands in for the browser's, for tests.
   */
  static async open(name: string, factory: IDBFactory = indexedDB): Promise<IndexedDBStorage> {
    const request = factory.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    return new IndexedDBStorage(await settled(request));
  }

  async read(): Promise<Uint8Array | null> {
    const transaction = this.#database.transaction(STORE, 'readonly');
    return (await settled<Uint8Array | undefined>(transaction.objectStore(STORE).get(STATE))) ?? null;
  }

  async replace(before: Uint8Array | null, state: Uint8Array): Promise<void> {
    const options = { durability: 'strict' } as const;
    const transaction = this.#database.transaction(STORE, 'readwrite', options);
    const done = completed(transaction);
    const store = transaction.objectStore(STORE);
    const found = store.get(STATE);
    let changed: unknown = null;
    found.onsuccess = () => {
      try {
        checkSame((found.result as Uint8Array | undefined) ?? null, before);
        store.put(state, STATE);
      } catch (error) {
        changed = error;
      }
    };
    await done;
    if (changed) throw changed;
  }

  /** Close the database. */
  close(): void {
    this.#database.close();
  }
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function completed(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}

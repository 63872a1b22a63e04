/*
 * A device, which observes a bit a tick and keeps nothing that it could open itself.
 *
 * Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
 * analytics", ICML 2025, section 4.
 */

import { equal } from './bytes.js';
import { type Coins, systemCoins } from './coins.js';
import type { Encryption } from './elgamal.js';
import { InputError, PlanError } from './errors.js';
import { type DeviceState, readState, REPORT_ID_BYTES, reportBytes, stateBytes } from './messages.js';
import type { Storage } from './storage.js';
import type { Task } from './task.js';

/** Observes a bit at each tick of a task, and reports once, at the end. */
export class Device {
  #state!: DeviceState;
  #stored: Uint8Array | null = null;
  #busy = false;
  readonly #storage: Storage;
  readonly #encryption: Encryption;
  readonly #coins: Coins;

  private constructor(
    readonly task: Task,
    storage: Storage,
    coins: Coins,
  ) {
    this.#storage = storage;
    this.#coins = coins;
    this.#encryption = task.encryption;
  }

  /**
   * Begin, or go on from the state in the storage.
   *
   * @param task what to observe, from `Task.read`.
   * @param storage where the state is kept. Give each device one of its own.
   * @param coins stand in for the system's, for tests.
   * @throws InputError if the state is damaged, of another version, or of another task that has not
   *   been reported; or if the key of the task is none. Nothing was changed.
   * @throws PlanError where there is no WebCrypto.
   */
  static async open(task: Task, storage: Storage, coins: Coins = systemCoins()): Promise<Device> {
    const device = new Device(task, storage, coins);
    device.#stored = await storage.read();
    const found = device.#stored && device.#resumed(readState(device.#stored));
    if (found) device.#state = found;
    else await device.#begin();
    return device;
  }

  /** Number of completed ticks; public. */
  get tick(): number {
    return this.#state.tick;
  }

  /** Whether the report was made. */
  get reported(): boolean {
    return this.#state.done;
  }

  /**
   * End a tick: call it once a tick, with an event or without.
   *
   * The row of either case is computed, one is taken, and every ciphertext of it is re-randomised.
   * When the promise resolves, the new state is stored.
   *
   * @throws PlanError if it is neither true nor false, all ticks are over, another call is not
   *   through, or another program has changed the state. Nothing was changed.
   */
  async observe(event: boolean): Promise<void> {
    if (typeof event !== 'boolean') {
      throw new PlanError('observe takes true or false: whether there was an event in this tick');
    }
    await this.#alone(async () => {
      const state = this.#state;
      const { kind, horizon } = this.task;
      if (state.done || state.tick === horizon) {
        throw new PlanError('all ticks of the task are over: report, and begin another task');
      }
      const rows = [state.row, kind.afterEvent(state.row, this.#encryption, this.#coins)];
      const row = this.#encryption.rerandomise(rows[Number(event)]!, this.#coins);
      await this.#store({ ...state, tick: state.tick + 1, row });
    });
  }

  /**
   * Return the report, at the end: it is made once, and takes the place of the state.
   *
   * Asked again, also after a crash, it is the same bytes, so that it can be sent until it has
   * arrived. The storage may then serve another task.
   *
   * @throws PlanError if ticks are missing, or as for `observe`. Nothing was changed.
   */
  async report(): Promise<Uint8Array> {
    await this.#alone(async () => {
      const state = this.#state;
      if (state.done) return;
      if (state.tick < this.task.horizon) {
        throw new PlanError('ticks are missing: observe them, with false where nothing was seen');
      }
      const row = this.task.kind.reported(state.row, this.#encryption, this.#coins);
      await this.#store({ ...state, done: true, row });
    });
    return reportBytes(this.#state, this.task);
  }

  /** Return a state to go on from; null for one of another task that is over. */
  #resumed(state: DeviceState): DeviceState | null {
    if (!equal(state.task, this.task.digest)) {
      if (state.done) return null;
      throw new InputError(
        'the storage holds a state of another task, which has not been reported: ' +
          'give each device a storage of its own, or remove it',
      );
    }
    const width = state.done ? this.task.kind.answers : this.task.kind.width;
    const length = width * this.#encryption.entryBytes;
    if (state.tick > this.task.horizon || state.row.length !== length) {
      throw new InputError('the state is damaged: remove it, and begin anew');
    }
    this.#encryption.check(state.row);
    return state;
  }

  /** Store the state before the first tick; the report has its name from here on. */
  async #begin(): Promise<void> {
    const row = this.task.kind.initial(this.#encryption, this.#coins);
    const name = this.#coins.key(REPORT_ID_BYTES);
    await this.#store({ task: this.task.digest, done: false, tick: 0, name, row });
  }

  async #store(state: DeviceState): Promise<void> {
    const bytes = stateBytes(state);
    await this.#storage.replace(this.#stored, bytes);
    [this.#state, this.#stored] = [state, bytes];
  }

  /** Do one thing at a time. */
  async #alone(work: () => Promise<void>): Promise<void> {
    if (this.#busy) throw new PlanError('a tick is not through yet: wait for its promise');
    this.#busy = true;
    try {
      await work();
    } finally {
      this.#busy = false;
    }
  }
}

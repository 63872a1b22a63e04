/* A clock for a device: which ticks are over, and whether an event was in the current one. */

import type { Device } from './device.js';
import { PlanError } from './errors.js';

/** Return the time in milliseconds. */
export type Clock = () => number;

/** When ticks begin and end; the same for all devices of a task, and public. */
export interface Schedule {
  /** Time at which the first tick begins, in milliseconds. */
  readonly start: number;
  /** Length of a tick, in milliseconds. */
  readonly every: number;
}

/**
 * Calls `observe` once a tick, whether there was an event or not.
 *
 * Call `pass` on a timer, at moments that do not depend on events. An event is in memory until its
 * tick is over: if the page is closed before, it is lost. A tick that passed while the page was
 * closed is observed without an event.
 */
export class Ticker {
  readonly #device: Device;
  readonly #schedule: Schedule;
  readonly #clock: Clock;
  readonly #events = new Set<number>();

  constructor(device: Device, schedule: Schedule, clock: Clock = Date.now) {
    if (!(schedule.every > 0) || !Number.isFinite(schedule.start)) {
      throw new PlanError('a schedule has a start, and ticks of more than 0 milliseconds');
    }
    [this.#device, this.#schedule, this.#clock] = [device, schedule, clock];
  }

  /** Number of ticks that are over by the clock, up to the horizon of the task. */
  get over(): number {
    return Math.min(Math.max(this.#current, 0), this.#device.task.horizon);
  }

  /** Number of the tick that runs by the clock; below 0 before the first one. */
  get #current(): number {
    return Math.floor((this.#clock() - this.#schedule.start) / this.#schedule.every);
  }

  /**
   * Remember that there was an event in the current tick.
   *
   * It does not count before the first tick, after the last one, and in a tick that is observed
   * already, as after a clock was set back.
   */
  event(): void {
    const tick = this.#current;
    const runs = tick >= this.#device.tick && tick < this.#device.task.horizon;
    if (runs && !this.#device.reported) this.#events.add(tick);
  }

  /** Observe all ticks that are over; return whether the device may report now. */
  async pass(): Promise<boolean> {
    for (const end = this.over; !this.#device.reported && this.#device.tick < end; ) {
      const { tick } = this.#device;
      await this.#device.observe(this.#events.has(tick));
      this.#events.delete(tick);
    }
    for (const tick of this.#events) if (tick < this.#device.tick) this.#events.delete(tick);
    return this.#device.reported || this.#device.tick === this.#device.task.horizon;
  }
}

/* The guarantee of a task for each device, and the check that the task's noise keeps it. */

import { bernoulli, binomial, gaussianSum, hockeyStick, type Law, sum } from './distributions.js';
import { PlanError } from './errors.js';
import { Fraction } from './fraction.js';
import { CountNonZero, type Kind, Mean, type Reporting } from './kinds.js';

const MOST_EPSILON = 100;
/** Variances of the sum of others from which on they need not be counted. */
const ENOUGH_BITS = 1e5;
const ENOUGH = 1e6;
const WIDEST = 1e10;
const SMOOTH = 4;
const RESOLUTION = 256;

/** The guarantee of one device, against a holder of the secret key. */
export interface Guarantee {
  readonly epsilon: Fraction;
  readonly delta: Fraction;
  /** Minimum number of reporting devices; 1 where a report is safe by itself. */
  readonly devices: number;
}

/** Throw `PlanError` if a number of a promise is out of range. */
export function checkPromise({ epsilon, delta }: Guarantee): void {
  if (epsilon.compare(MOST_EPSILON) > 0 || epsilon.numerator === 0n) {
    throw new PlanError(`epsilon must be above 0 and at most ${MOST_EPSILON}`);
  }
  if (delta.compare(1) >= 0) throw new PlanError('delta must be at least 0 and below 1');
}

/** Return whether the noise of a kind is enough for a promise. */
export function keeps(kind: Kind, promise: Guarantee): boolean {
  if (kind instanceof Mean) return meanKeeps(kind, promise);
  const { epsilon0, reporting } = kind as CountNonZero;
  if (promise.epsilon.compare(epsilon0) >= 0) return true;
  const apart = kind instanceof CountNonZero ? countLoss : histogramLoss;
  const places = kind instanceof CountNonZero ? 1 : 2;
  return othersKeep(promise, places, (ranges) => apart(reporting, promise, ranges));
}

function meanKeeps(kind: Mean, { epsilon, delta, devices }: Guarantee): boolean {
  const enough = kind.variance.compare(SMOOTH) >= 0 ? WIDEST : ENOUGH;
  const count = Math.min(devices, Math.ceil(enough / kind.variance.toNumber()));
  const noise = gaussianSum(kind.variance, count);
  const moved = { ...noise, first: noise.first + kind.most };
  return within(hockeyStick(epsilon, [moved, noise]), delta);
}

type Range = readonly [number, number];
type Loss = (ranges: readonly Range[]) => number;

/**
 * Return whether a divergence is at most the promised delta, whatever the other devices hold.
 *
 * Ranges of how many others hold a 1 are split in half, the one with the highest bound first, until
 * that bound is low enough, or its range is too narrow to be split further.
 */
function othersKeep(promise: Guarantee, places: number, apart: Loss): boolean {
  const others = promise.devices - 1;
  const whole = Array<Range>(places).fill([0, others]);
  const open = [{ bound: apart(whole), ranges: whole }];
  for (;;) {
    open.sort((one, other) => one.bound - other.bound);
    const { bound, ranges } = open.pop()!;
    if (within(bound, promise.delta)) return true;
    const widths = ranges.map(([fewest, most]) => most - fewest);
    const widest = widths.indexOf(Math.max(...widths));
    if (widths[widest]! <= Math.floor(others / RESOLUTION)) return false;
    for (const half of halves(ranges[widest]!)) {
      const part = ranges.map((range, place) => (place === widest ? half : range));
      if (part.reduce((least, [fewest]) => least + fewest, 0) <= others) {
        open.push({ bound: apart(part), ranges: part });
      }
    }
  }
}

function halves([fewest, most]: Range): Range[] {
  const middle = Math.floor((fewest + most) / 2);
  return [
    [fewest, middle],
    [middle + 1, most],
  ];
}

/** Return the law of what the other devices add to a sum, but for those in a range. */
function othersOf({ present, absent }: Reporting, devices: number, [fewest, most]: Range): Law {
  const spread = absent.times(new Fraction(1).minus(absent)).toNumber();
  const enough = Math.ceil(ENOUGH_BITS / spread);
  const zeros = Math.min(devices - 1 - most, enough);
  return sum(binomial(Math.min(fewest, enough), present), binomial(zeros, absent));
}

function countLoss(reporting: Reporting, promise: Guarantee, ranges: readonly Range[]): number {
  const others = othersOf(reporting, promise.devices, ranges[0]!);
  const one = sum(others, bernoulli(reporting.present));
  const other = sum(others, bernoulli(reporting.absent));
  const { epsilon } = promise;
  return Math.max(hockeyStick(epsilon, [one, other]), hockeyStick(epsilon, [other, one]));
}

/** Two bits of a report differ, in opposite directions; all others have the same law. */
function histogramLoss(reporting: Reporting, promise: Guarantee, ranges: readonly Range[]): number {
  const [one, other] = ranges.map((range) => othersOf(reporting, promise.devices, range));
  const here = bernoulli(reporting.present);
  const there = bernoulli(reporting.absent);
  return hockeyStick(
    promise.epsilon,
    [sum(one!, here), sum(one!, there)],
    [sum(other!, there), sum(other!, here)],
  );
}

/** Return whether a bound in floats is at most an exact number. */
function within(bound: number, delta: Fraction): boolean {
  return bound <= delta.toNumber();
}

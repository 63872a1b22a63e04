/** What came from outside is wrong: a task, a state, a key. The message shows nothing of it. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/** The call cannot be made: a value is out of range, or it is not the time for it. */
export class PlanError extends Error {
  override readonly name = 'PlanError';
}

import { SkeinError } from "../core/errors.ts";

/** How much is given at once, the same in every store. More than the most is the most. */

export function sessionLimit(limit: number | undefined): number {
  return within(limit ?? 100, 1000);
}

export function entryLimit(limit: number): number {
  return within(limit, 1000);
}

export function hitLimit(limit: number | undefined): number {
  return within(limit ?? 10, 50);
}

function within(limit: number, most: number): number {
  if (Number.isInteger(limit) && limit >= 1) return Math.min(limit, most);
  throw new SkeinError("invalid_arguments", {
    problem: `The limit ${limit} is not a whole number from 1 up`,
    advice: `Use 1 to ${most}`,
  });
}

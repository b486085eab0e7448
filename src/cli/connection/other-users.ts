import { CallError } from "../../client/contract.ts";
import { SkeinError } from "../../core/errors.ts";
import type { AllUsersOption, Invocation } from "../output/invocation.ts";

/** Whether a list says how many rows of other users it leaves out. */
export function shouldCountOthers({
  options: { json, user, allUsers },
}: Invocation<AllUsersOption>): boolean {
  return json !== true && user === undefined && allUsers !== true;
}

/** Returns the note below a list about rows of other users, if there are any and the caller may see them. */
export async function otherUsersNote(
  cli: Invocation<AllUsersOption>,
  count: () => Promise<{ readonly others: number; readonly isExact: boolean }>,
): Promise<string[]> {
  if (!shouldCountOthers(cli)) return [];
  try {
    const { others, isExact } = await count();
    const number = `${isExact ? "" : "at least "}${others}`;
    return others > 0 ? [`${number} more from other users (use --all-users)`] : [];
  } catch (error) {
    const isKnown = error instanceof CallError || error instanceof SkeinError;
    if (isKnown && error.code === "forbidden") return [];
    throw error;
  }
}

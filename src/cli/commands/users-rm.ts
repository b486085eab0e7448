import { SkeinError } from "../../core/errors.ts";
import { userSegment } from "../../core/path-segment.ts";
import { withCalls } from "../folder/with-calls.ts";
import { counted } from "../output/amounts.ts";
import { answer, pendingLines } from "../output/answer.ts";
import { confirm } from "../output/confirm.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";

export async function removeUserCommand(
  terminal: Terminal,
  userId: string,
  options: GlobalOptions & { readonly yes?: boolean },
): Promise<void> {
  userSegment(userId);
  const { user, agent } = options;
  if ((user !== undefined && user !== userId) || agent !== undefined) {
    throw new SkeinError("invalid_arguments", {
      problem: `All of user ${userId} is meant, and --user or --agent say otherwise`,
      advice: "Leave --user and --agent out",
    });
  }
  await withCalls(terminal, { ...options, user: userId }, async ({ calls }) => {
    await confirm(terminal, `Delete everything of user ${userId} for good?`, options);
    const done = await calls.call("users.remove", { userId });
    answer(terminal, options, done, [
      `user ${userId} is gone for good, with ${counted(done.sessions, "session")}`,
      ...pendingLines(done),
    ]);
  });
}

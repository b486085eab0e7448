import { SkeinError } from "../../core/errors.ts";
import { userSegment } from "../../core/path-segment.ts";
import type { UserRemovedPayload } from "../../protocol/session-changes.ts";
import { withFolder } from "../folder/with-folder.ts";
import { counted } from "../output/amounts.ts";
import { answer } from "../output/answer.ts";
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
  await withFolder(terminal, { ...options, user: userId }, async ({ store }) => {
    await confirm(terminal, `Delete everything of user ${userId} for good?`, options);
    const { sessions } = await store.purgeUser(userId);
    const payload: UserRemovedPayload = { userId, sessions };
    answer(terminal, options, payload, [
      `user ${userId} is gone for good, with ${counted(sessions, "session")}`,
    ]);
  });
}

import { SkeinError } from "../../../core/errors.ts";
import { isAcpKey } from "../../../core/keys.ts";

const reasons = {
  fork: "a fork of our record would lack what the agent itself remembers",
  branch: "what it was told stays in its own memory, wherever our record goes on from",
  settings: "its model and thinking are set when it is spawned",
  create: "a session of it is made by a spawn alone",
} as const;

/** Refuses what a record of somebody else's agent is not for: that agent's memory does not follow. */
export function checkOwn({ key }: { readonly key: string }, what: keyof typeof reasons): void {
  if (!isAcpKey(key)) return;
  const agent = key.split(":")[1] ?? key;
  const advice = "Spawn another session of the agent, with sessions_spawn and what it is to know";
  throw new SkeinError("acp_unsupported", { agent, problem: reasons[what], advice });
}

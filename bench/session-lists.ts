import { plainModel } from "./scripted.ts";
import type { Figures, Job } from "./side.ts";
import { timed, timedOften } from "./side.ts";
import { withSkein } from "./turns.ts";

/** `sessions_list` as called by a session, with the configured visibility. */

const rounds = 20;

export async function listTool(job: Job): Promise<Figures> {
  const { visibility = "all" } = job;
  const settings = {
    tools: { sessions: { visibility }, agentToAgent: { enabled: true, allow: ["*"] } },
  };
  return withSkein(
    job,
    plainModel(),
    async (skein) => {
      let rows = 0;
      const call = async (messageLimit: number) => {
        const asker = { sessionKey: "agent:main:main" };
        const { result } = await skein.callTool("sessions_list", { limit: 100, messageLimit }, asker);
        rows = "count" in result ? result.count : 0;
      };
      const firstMs = await timed(() => call(5));
      const ms = await timedOften(rounds, () => call(5));
      const plainMs = await timedOften(rounds, () => call(0));
      return { ms, plainMs, firstMs, rows };
    },
    settings,
  );
}

// A lead gives a task to a coder and the result to a reviewer, both external agents over ACP. See README.md.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createSkein, defineAgent } from "skein";

// Any agent that supports ACP can do the work: CODER=claude uses Claude Code. Without one, Skein's own `skein acp` does.
const skeinProgram = join(dirname(fileURLToPath(import.meta.resolve("skein/package.json"))), "bin/skein.mjs");
const home = join(process.env.SKEIN_DIR ?? ".skein", "team");
const asSkein = (name: string) => ({
  command: process.execPath,
  args: [skeinProgram, "acp", "--dir", join(home, name)],
});
const { CODER: coder, REVIEWER: reviewer } = process.env;

const skein = await createSkein({
  agents: [defineAgent({ id: "lead", model: process.env.MODEL ?? "rehearsal/basic" })],
  config: {
    acp: {
      agents: {
        [coder ?? "coder"]: coder === undefined ? asSkein("coder") : {},
        [reviewer ?? "reviewer"]: reviewer === undefined ? asSkein("reviewer") : {},
      },
      permissions: "ask",
    },
  },
});
skein.subscribe((event) => {
  if (event.type !== "approval.requested") return;
  console.log(`${event.sessionKey} asks for ${event.toolName}: approved`);
  void skein.approvals.resolve(event.approvalId, "approved", "lead");
});

const lead = { sessionKey: "agent:lead:main" };
await skein.session(lead).send("repeat the team is ready").result;

async function assign(agentId: string, task: string): Promise<string> {
  const { result } = await skein.callTool(
    "sessions_spawn",
    { runtime: "acp", agentId, task, background: false },
    lead,
  );
  if (result.status !== "ok") throw new Error(result.error);
  console.log(`\n${agentId} (${result.outcome}) in ${result.childSessionKey}:\n${result.result}`);
  return result.result ?? "";
}

const task = process.argv.slice(2).join(" ") || "write a function that reverses a list";
const code = await assign(coder ?? "coder", task);
await assign(reviewer ?? "reviewer", `summarize this work in one paragraph:\n\n${code}`);

const { result } = await skein.callTool("session_search", { query: "reverses a list" }, lead);
if (!("hits" in result)) throw new Error(result.error);
console.log(`\nfound in ${[...new Set(result.hits.map(({ key }) => key))].join(", ")}`);
await skein.close();

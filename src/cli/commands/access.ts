import type { AccessAction } from "../../access/visibility/policy.ts";
import { Agents } from "../../compose/agents.ts";
import { agentSettings } from "../../config/agent-settings.ts";
import { present } from "../../core/present.ts";
import type { AccessPayload } from "../../protocol/access.ts";
import type { Asker } from "../../sessions/access/contract.ts";
import { sandboxedBy } from "../../sessions/access/sandboxed.ts";
import { createSessionAccess } from "../../sessions/access/session-access.ts";
import { findSession } from "../folder/find-session.ts";
import type { Folder } from "../folder/with-folder.ts";
import { withFolder } from "../folder/with-folder.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { printTable } from "../output/table.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, printJson } from "../output/terminal.ts";

export interface AccessOptions extends GlobalOptions {
  readonly action?: AccessAction;
}

type Explanation = AccessPayload["explanations"][number];

const everyAction: readonly AccessAction[] = ["list", "history", "send", "status"];

/** A refusal that can be read to its end, wherever the terminal's edge is. */
const longest = 2000;

/** Whether a session may do something with another, and by which rule. Any answer is a good end. */
export async function accessCommand(
  terminal: Terminal,
  asker: string,
  target: string,
  options: AccessOptions,
): Promise<void> {
  await withFolder(terminal, options, async (folder) => {
    const actions = options.action === undefined ? everyAction : [options.action];
    const payload = await accessPayload(folder, asker, target, actions);
    if (options.json === true) printJson(terminal, payload);
    else printAccess(terminal, payload);
  });
}

/** People name any session as the asker; what is asked for is read as that asker would write it. */
async function accessPayload(
  folder: Folder,
  name: string,
  target: string,
  actions: readonly AccessAction[],
): Promise<AccessPayload> {
  const { store, config } = folder;
  const session = await findSession(folder, name);
  const { key, sessionId, agentId, userId } = session;
  const sandboxed = sandboxedBy((id) => agentSettings(config, id).sandboxed)(session);
  const asker: Asker = { userId, agentId, session, sandboxed };
  const configured = Object.keys(config.agents);
  const agents = new Agents({ config, env: () => undefined, definitions: [], configured });
  const settings = agents.access;
  const access = createSessionAccess({ store, settings: () => settings, scope: config.session.scope });
  const explanations: Explanation[] = [];
  for (const action of actions) {
    const { decision, steps } = await access.explain(asker, target, action);
    explanations.push({ action, decision, steps: [...steps] });
  }
  return { asker: present({ key, sessionId, agentId, userId, sandboxed }), target, explanations };
}

function printAccess(terminal: Terminal, { asker, target, explanations }: AccessPayload): void {
  const who = asker.sandboxed ? `${asker.key} (sandboxed)` : asker.key;
  terminal.out(`${oneLine(`${who} asks for ${target}`, longest)}\n`);
  for (const explanation of explanations) {
    terminal.out("\n");
    printTable(
      terminal,
      [
        { title: "RULE", text: ({ rule }) => rule },
        { title: "OUTCOME", text: ({ outcome }) => outcome },
        { title: "REASON", text: ({ reason }) => reason, least: 20 },
      ],
      explanation.steps,
    );
    printDecision(terminal, explanation);
  }
}

function printDecision(terminal: Terminal, { action, decision, steps }: Explanation): void {
  const word = decision.allowed
    ? paint(terminal, "green", "allowed")
    : paint(terminal, "red", `refused, ${decision.code}`);
  const reason = oneLine(steps.at(-1)?.reason ?? "", longest);
  terminal.out(`${paint(terminal, "bold", action)}: ${word}. ${reason}\n`);
}

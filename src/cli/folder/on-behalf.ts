import type { Config } from "../../config/sections/all.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { Asker } from "../../core/references.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { commandLine } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { defaultAgent } from "./with-folder.ts";

/** On whose behalf a command calls methods, as its options say. */
export interface OnBehalf {
  readonly asker: Asker;
  /** `--user` and `--agent` as params of methods about one session have them. */
  readonly reader: { readonly userId?: string; readonly agentId?: string };
  /** Whose sessions: those of `--user`, else of the gateway's token; `null`: the unnamed user's. */
  readonly userId: string | null;
  readonly config: Config;
  /** A command for the user to type next, about this same place. */
  toType(...words: readonly string[]): string;
}

export function onBehalf(
  terminal: Terminal,
  options: GlobalOptions,
  config: Config,
  tokenUser?: string,
): OnBehalf {
  const agentId = parseAgentId(options.agent ?? defaultAgent);
  return {
    asker: { agentId, scope: config.session.scope },
    reader: present({ userId: options.user, agentId: options.agent === undefined ? null : agentId }),
    userId: options.user ?? tokenUser ?? null,
    config,
    toType: (...words) => commandLine(terminal, options, words),
  };
}

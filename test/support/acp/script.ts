import type {
  PermissionOption,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
  StopReason,
  Usage,
} from "@agentclientprotocol/sdk/unstable";
import { supportProgram } from "../programs.ts";

/** What the scripted agent does, as JSON. */
export interface AgentScript {
  /** Kept across processes; left out: in memory, and lost with the process. */
  readonly sessionsFile?: string;
  /** Every process appends its pid here, grandchildren too. */
  readonly pidFile?: string;
  /** `hang`: never answers. `exit`: ends with words on stderr. `garbage`: writes no JSON, and stays. */
  readonly start?: "hang" | "exit" | "garbage" | "auth_required" | "wrong_version" | "hang_new" | "banner";
  /** What it says that it can; all of it by default. */
  readonly can?: {
    readonly load?: boolean;
    readonly resume?: boolean;
    readonly list?: boolean;
    /** Left out: no. */
    readonly systemPrompt?: boolean;
  };
  readonly configOptions?: readonly SessionConfigOption[];
  readonly modes?: SessionModeState;
  /** As agents had them before there were config options; `isListedOnly`: it does not know how to set one. */
  readonly models?: readonly string[];
  readonly isListedOnly?: boolean;
  readonly ignoreCancel?: boolean;
  readonly ignoreSigterm?: boolean;
  /** The n-th prompt of a session plays the n-th; the last is played again. */
  readonly turns?: readonly (readonly Step[])[];
}

/** A step of a turn. Steps that learn something say it, so that a test reads it in the answer. */
export type Step =
  | { readonly say: string }
  | { readonly think: string }
  /** Any update, as it is. */
  | { readonly update: SessionUpdate }
  /** Says the texts of the prompt, each in brackets. */
  | { readonly echo: true }
  /** Says its pid, its folder, or variables of its environment as JSON. */
  | { readonly tell: "pid" | "cwd" | "env" | "config" | "system" }
  | {
      readonly permission: {
        readonly id: string;
        readonly title: string;
        readonly kind?: "execute" | "edit" | "other";
        readonly rawInput?: unknown;
      };
      readonly options?: readonly PermissionOption[];
      /** It does not wait for the answer. */
      readonly isLeft?: true;
      readonly allowed?: readonly Step[];
      readonly rejected?: readonly Step[];
    }
  /** So many permissions at once; says how many were allowed, rejected, cancelled or failed. */
  | { readonly storm: number }
  | { readonly read: string }
  | { readonly write: string; readonly content: string }
  | { readonly terminal: string; readonly args?: readonly string[]; readonly cwd?: string }
  /** A terminal that is started and left running. */
  | { readonly leaveTerminal: string; readonly args?: readonly string[]; readonly isLeft?: true }
  /** Waits until there is such a file. */
  | { readonly until: string }
  /** What it sends once it is cancelled, before it ends its turn. */
  | { readonly onCancel: readonly SessionUpdate[] }
  /** The usage of the prompt's answer. */
  | { readonly usage: Usage }
  | { readonly stop: StopReason }
  /** Waits until it is cancelled, or for ever. */
  | { readonly wait: "cancel" | "for_ever" }
  | { readonly exit: number; readonly stderr?: string }
  | { readonly stderr: string }
  /** As it is, on stdout. */
  | { readonly raw: string }
  /** A text update whose line has so many bytes. */
  | { readonly longLine: number }
  /** A line without an end of so many bytes. */
  | { readonly endless: number }
  /** Starts a process of its own that ignores SIGTERM. */
  | { readonly fork: true }
  | { readonly fail: { readonly code: number; readonly message: string; readonly data?: unknown } }
  /** Said after the answer to the prompt. */
  | { readonly later: string };

const program = supportProgram("acp/scripted-agent");

/** How the scripted agent is started: `acp.agents.<name>` takes it as it is. */
export function scriptedAgent(script: AgentScript): { command: string; args: string[] } {
  return { command: process.execPath, args: [program, JSON.stringify(script)] };
}

import type {
  PermissionOption,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
  StopReason,
  Usage,
} from "@agentclientprotocol/sdk/unstable";
import { supportProgram } from "../programs.ts";

/** The script of the scripted agent, as JSON. */
export interface AgentScript {
  /** Stored across processes; absent: in memory, and lost with the process. */
  readonly sessionsFile?: string;
  /** Every process appends its pid here, including grandchildren. */
  readonly pidFile?: string;
  /** `hang`: never answers. `exit`: exits with a message on stderr. `garbage`: writes invalid JSON, and stays. */
  readonly start?: "hang" | "exit" | "garbage" | "auth_required" | "wrong_version" | "hang_new" | "banner";
  /** Its declared capabilities; by default all. */
  readonly can?: {
    readonly load?: boolean;
    readonly resume?: boolean;
    readonly list?: boolean;
    /** Absent: no. */
    readonly systemPrompt?: boolean;
  };
  readonly configOptions?: readonly SessionConfigOption[];
  readonly modes?: SessionModeState;
  /** Models in the form used before config options existed; `isListedOnly`: it cannot set one. */
  readonly models?: readonly string[];
  readonly isListedOnly?: boolean;
  readonly ignoreCancel?: boolean;
  readonly ignoreSigterm?: boolean;
  /** The nth prompt of a session plays the nth turn; the last one repeats. */
  readonly turns?: readonly (readonly Step[])[];
}

/** A step of a turn. Steps that learn something report it, so that a test can read it in the answer. */
export type Step =
  | { readonly say: string }
  | { readonly think: string }
  /** Any update, sent unchanged. */
  | { readonly update: SessionUpdate }
  /** Reports the texts of the prompt, each in brackets. */
  | { readonly echo: true }
  /** Reports its pid, its folder, or variables of its environment as JSON. */
  | { readonly tell: "pid" | "cwd" | "env" | "config" | "system" }
  | {
      readonly permission: {
        readonly id: string;
        readonly title: string;
        readonly kind?: "execute" | "edit" | "other";
        readonly rawInput?: unknown;
      };
      readonly options?: readonly PermissionOption[];
      /** Does not wait for the response. */
      readonly isLeft?: true;
      readonly allowed?: readonly Step[];
      readonly rejected?: readonly Step[];
    }
  /** This many permission requests at once; reports how many were allowed, rejected, cancelled or failed. */
  | { readonly storm: number }
  | { readonly read: string }
  | { readonly write: string; readonly content: string }
  | { readonly terminal: string; readonly args?: readonly string[]; readonly cwd?: string }
  /** A terminal that is started and left running. */
  | { readonly leaveTerminal: string; readonly args?: readonly string[]; readonly isLeft?: true }
  /** Waits until this file exists. */
  | { readonly until: string }
  /** What it sends after it is cancelled, before it ends its turn. */
  | { readonly onCancel: readonly SessionUpdate[] }
  /** The usage in the prompt response. */
  | { readonly usage: Usage }
  | { readonly stop: StopReason }
  /** Waits until it is cancelled, or forever. */
  | { readonly wait: "cancel" | "for_ever" }
  | { readonly exit: number; readonly stderr?: string }
  | { readonly stderr: string }
  /** Written to stdout unchanged. */
  | { readonly raw: string }
  /** A text update whose line has this many bytes. */
  | { readonly longLine: number }
  /** An unterminated line of this many bytes. */
  | { readonly endless: number }
  /** Starts a process of its own that ignores SIGTERM. */
  | { readonly fork: true }
  | { readonly fail: { readonly code: number; readonly message: string; readonly data?: unknown } }
  /** Sent after the response to the prompt. */
  | { readonly later: string };

const program = supportProgram("acp/scripted-agent");

/** The configuration that starts the scripted agent, for `acp.agents.<name>`. */
export function scriptedAgent(script: AgentScript): { command: string; args: string[] } {
  return { command: process.execPath, args: [program, JSON.stringify(script)] };
}

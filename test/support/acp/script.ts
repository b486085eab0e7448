import type {
  PermissionOption,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
  StopReason,
  Usage,
} from "@agentclientprotocol/sdk/unstable";
import { supportProgram } from "../programs.ts";

/** The scripted agent's script, as JSON. */
export interface AgentScript {
  /** The file that stores sessions across processes. If absent, they are kept in memory and lost with the process. */
  readonly sessionsFile?: string;
  /** Every process, including grandchildren, appends its PID here. */
  readonly pidFile?: string;
  /**
   * `hang` never answers, `exit` exits with a message on stderr, and `garbage` writes invalid JSON and keeps running.
   */
  readonly start?: "hang" | "exit" | "garbage" | "auth_required" | "wrong_version" | "hang_new" | "banner";
  /** The agent's declared capabilities. Defaults to all of them. */
  readonly can?: {
    readonly load?: boolean;
    readonly resume?: boolean;
    readonly list?: boolean;
    /** Defaults to `false`. */
    readonly systemPrompt?: boolean;
  };
  readonly configOptions?: readonly SessionConfigOption[];
  readonly modes?: SessionModeState;
  /** Models in the form that predates config options. If `isListedOnly` is set, none can be selected. */
  readonly models?: readonly string[];
  readonly isListedOnly?: boolean;
  readonly ignoreCancel?: boolean;
  readonly ignoreSigterm?: boolean;
  /** The nth prompt in a session plays the nth turn. The last turn repeats. */
  readonly turns?: readonly (readonly Step[])[];
}

/** A step in a turn. Steps that learn something report it so that a test can read it in the answer. */
export type Step =
  | { readonly say: string }
  | { readonly think: string }
  /** Any update, sent unchanged. */
  | { readonly update: SessionUpdate }
  /** Reports the texts in the prompt, each in brackets. */
  | { readonly echo: true }
  /** Reports its PID, its folder, or environment variables as JSON. */
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
  /**
   * Sends this many permission requests at the same time. Reports how many were allowed, rejected, canceled or failed.
   */
  | { readonly storm: number }
  | { readonly read: string }
  | { readonly write: string; readonly content: string }
  | { readonly terminal: string; readonly args?: readonly string[]; readonly cwd?: string }
  /** A terminal that is started and left running. */
  | { readonly leaveTerminal: string; readonly args?: readonly string[]; readonly isLeft?: true }
  /** Waits until this file exists. */
  | { readonly until: string }
  /** Sent after the agent is canceled, before it ends its turn. */
  | { readonly onCancel: readonly SessionUpdate[] }
  /** The usage in the prompt response. */
  | { readonly usage: Usage }
  | { readonly stop: StopReason }
  /** Waits until it is canceled, or forever. */
  | { readonly wait: "cancel" | "for_ever" }
  | { readonly exit: number; readonly stderr?: string }
  | { readonly stderr: string }
  /** Written to stdout unchanged. */
  | { readonly raw: string }
  /** A text update on a line with this many bytes. */
  | { readonly longLine: number }
  /** An unterminated line of this many bytes. */
  | { readonly endless: number }
  /** Starts a process that ignores SIGTERM. */
  | { readonly fork: true }
  | { readonly fail: { readonly code: number; readonly message: string; readonly data?: unknown } }
  /** Sent after the response to the prompt. */
  | { readonly later: string };

const program = supportProgram("acp/scripted-agent");

/** The configuration in `acp.agents.<name>` that starts the scripted agent. */
export function scriptedAgent(script: AgentScript): { command: string; args: string[] } {
  return { command: process.execPath, args: [program, JSON.stringify(script)] };
}

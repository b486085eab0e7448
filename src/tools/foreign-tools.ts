import type { SessionTool, ToolResult } from "./contract.ts";
import { modelParameters } from "./model-parameters.ts";

/** A call that somebody else's loop makes. */
export interface ForeignCall {
  readonly toolCallId: string;
  readonly signal: AbortSignal | null;
}

export type RunForeign = (name: string, args: unknown, call: ForeignCall) => Promise<ToolResult>;

/** A tool in the form that the AI SDK takes, and nothing of the AI SDK in it. */
export interface ForeignTool {
  readonly description: string;
  readonly inputSchema: ForeignSchema;
  execute(
    args: unknown,
    call: { readonly toolCallId: string; readonly abortSignal?: AbortSignal | undefined },
  ): Promise<ToolResult>;
}

/** A Standard Schema that is told as JSON Schema. Everything passes: what is wrong is a refusal of the tool's own. */
export interface ForeignSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "skein";
    validate(value: unknown): { readonly value: unknown };
    readonly jsonSchema: {
      input(options?: unknown): Record<string, unknown>;
      output(options?: unknown): Record<string, unknown>;
    };
  };
}

/** Tools for a loop that is not ours: by name, each calls `run`. Such a loop cannot be put to sleep. */
export function foreignTools(run: RunForeign, tools: readonly Told[]): Record<string, ForeignTool> {
  return Object.fromEntries(tools.map((tool) => [tool.name, foreignTool(run, tool)]));
}

type Told = Pick<SessionTool, "name" | "description" | "parameters">;

const noSleep: ToolResult = {
  status: "error",
  code: "yield_not_supported",
  error: "Yield not supported in this context",
};

function foreignTool(run: RunForeign, { name, description, parameters }: Told): ForeignTool {
  return {
    description,
    inputSchema: schemaOf(parameters),
    execute: async (args, { toolCallId, abortSignal }) =>
      name === "sessions_yield" ? noSleep : run(name, args, { toolCallId, signal: abortSignal ?? null }),
  };
}

function schemaOf(parameters: SessionTool["parameters"]): ForeignSchema {
  const written = () => ({ ...modelParameters(parameters) });
  return {
    "~standard": {
      version: 1,
      vendor: "skein",
      validate: (value) => ({ value }),
      jsonSchema: { input: written, output: written },
    },
  };
}

import type { Static, TObject, TProperties } from "typebox";

/** What a tool's parameters may be written with. Types alone: nothing is loaded. */

/** A schema of any library that keeps to Standard Schema: zod, valibot, arktype. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What the parameters of a tool are written with: a Standard Schema, or a TypeBox schema of an object. */
export type ToolParameters = StandardSchema | { readonly type: "object" };

/** The arguments that a tool's function is given, as its parameters say. */
export type ArgumentsOf<P> = P extends {
  readonly "~standard": { readonly types?: { readonly output: infer Output } | undefined };
}
  ? Output
  : P extends TObject<infer Properties extends TProperties>
    ? Static<TObject<Properties>>
    : P extends { readonly type: "object" }
      ? Readonly<Record<string, unknown>>
      : Readonly<Record<string, never>>;

export function isStandardSchema(parameters: ToolParameters): parameters is StandardSchema {
  return "~standard" in parameters;
}

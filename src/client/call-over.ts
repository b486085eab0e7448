import { idempotentMethods } from "../protocol/idempotent.ts";
import type { MethodName, Params, Result } from "../protocol/method-table.ts";
import type { Connection } from "./connection.ts";
import { CallError } from "./contract.ts";

/** Calls a method over a connection, for callers of the client. */
export async function callOver<M extends MethodName>(
  connection: Connection,
  method: M,
  params: Params<M>,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Result<M>> {
  if (method === "sessions.subscribe" || method === "sessions.unsubscribe") throw useEvents(method);
  const isIdempotent = idempotentMethods.has(method);
  return (await connection.request(method, params, { signal, isIdempotent })) as Result<M>;
}

function useEvents(method: string): CallError {
  const message = `${method} applies to a single socket, which is replaced on reconnect. Use events() or follow(), which resubscribe automatically.`;
  return new CallError({ code: "invalid_request", message });
}

import type { IncomingMessage } from "node:http";
import type { WireError } from "../../../protocol/errors.ts";
import { siteProblem } from "../../auth/sites.ts";
import type { ServerSettings } from "../../contract.ts";
import { wrongSite } from "./refusals.ts";

/** Why a request may not come in under this name or from this page; `null`: it may. Asked before anything else is. */
export function siteRefusal(
  request: IncomingMessage,
  { host, allowedHosts }: ServerSettings,
  port: number,
): WireError | null {
  const { url = "", rawHeaders, socket } = request;
  const problem = siteProblem(
    {
      target: url,
      host: valuesOf(rawHeaders, "host"),
      origin: valuesOf(rawHeaders, "origin"),
      fetchSite: valuesOf(rawHeaders, "sec-fetch-site"),
      fetchMode: valuesOf(rawHeaders, "sec-fetch-mode"),
    },
    { port, bound: [host, socket.localAddress ?? host], allowedHosts },
  );
  return problem === null ? null : wrongSite(problem);
}

/** Every value of a header as it came: Node drops what comes twice. */
export function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] | undefined {
  const values: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const header = rawHeaders[index] as string;
    if (header.length === name.length && header.toLowerCase() === name)
      values.push(rawHeaders[index + 1] as string);
  }
  return values.length === 0 ? undefined : values;
}

import { tryListening } from "../src/cli/gateway/port.ts";
import { loadConfig } from "../src/config/load.ts";
import type { LoadOptions } from "../src/config/root.ts";
import { findRunning } from "../src/gateway/running-file.ts";

/**
 * Returns the default port if no other port was chosen and another program is using the default. Otherwise, returns
 * `null`. For a first try, any free port is better than an error. An invalid configuration is still rejected.
 */
export async function usualPortTaken(
  args: readonly string[],
  where: LoadOptions,
  listen: typeof tryListening = tryListening,
): Promise<number | null> {
  const { config, sources } = await loadConfig(where);
  const { host, port } = config.gateway;
  const isChosen = sources.get("gateway.port")?.from !== "default";
  if (isChosen || args.some((arg) => /^--port(?:=|$)/.test(arg))) return null;
  if (findRunning(config.store.path) !== null) return null;
  try {
    await listen(host, port);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EADDRINUSE" ? port : null;
  }
}

import { createServer } from "node:net";
import type { Config } from "../../config/sections/all.ts";
import { SkeinError } from "../../core/errors.ts";
import { checkBinding } from "../../gateway/auth/binding.ts";
import { findRunning } from "../../gateway/running-file.ts";
import type { FindingPayload } from "../../protocol/upkeep.ts";
import { portError } from "./port-error.ts";

/** Whether a gateway could listen where the configuration says, or does already. */
export async function checkPort({
  gateway,
  store,
}: Pick<Config, "gateway" | "store">): Promise<FindingPayload[]> {
  const { host, port, expose } = gateway;
  const finding = (severity: FindingPayload["severity"], what: string, remedy: string): FindingPayload => ({
    area: "ports",
    severity,
    file: `${host}:${port}`,
    what,
    remedy,
    fixable: false,
    fixed: false,
  });
  const running = findRunning(store.path);
  if (running !== null) {
    const what = `The gateway of this folder listens at ${running.url} (process ${running.pid})`;
    return [finding("note", what, "No action is needed")];
  }
  try {
    checkBinding(host, expose);
    await tryListening(host, port);
    return [];
  } catch (error) {
    const told = await portError(error, gateway);
    if (!(told instanceof SkeinError)) throw told;
    return [finding("warning", told.message.slice(0, -told.remedy.length).trim(), told.remedy)];
  }
}

/** For a moment; nobody is let in. */
export function tryListening(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", reject).listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}

import { redactorOf } from "../../compose/redaction.ts";
import type { Config } from "../../config/sections/all.ts";
import type { Log } from "../../telemetry/log.ts";
import { createLog } from "../../telemetry/log.ts";

/** What the gateway itself has to say, where and as weighty as the configuration wants it. */
export function openGatewayLog(config: Config): Promise<Log> {
  const { level, file } = config.logging;
  const redactor = redactorOf(config);
  return createLog({ level, destination: file ?? 2, redact: (text) => redactor.redact(text).text });
}

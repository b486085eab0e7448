import { redactorOf } from "../../compose/redaction.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Log } from "../../telemetry/log.ts";
import { createLog } from "../../telemetry/log.ts";

/** What the gateway itself has to say, where and as weighty as the configuration wants it. */
export function openGatewayLog(loaded: LoadedConfig): Promise<Log> {
  const { level, file } = loaded.config.logging;
  const redactor = redactorOf(loaded);
  return createLog({ level, destination: file ?? 2, redact: (text) => redactor.redact(text).text });
}

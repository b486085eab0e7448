import type { AcpDeps, AcpRuntime } from "./contract.ts";

export function createAcpRuntime(_: AcpDeps): AcpRuntime {
  throw new Error("to be written");
}

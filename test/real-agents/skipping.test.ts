import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { closeAll, newFolder } from "../support/skein.ts";
import { realAgents } from "./agents.ts";
import { groundOf } from "./ground.ts";

afterEach(async () => {
  vi.unstubAllEnvs();
  await closeAll();
});

const context = {
  skip(reason: string): never {
    throw new Error(`skipped: ${reason}`);
  },
};

describe.each(realAgents)("$name", (agent) => {
  test("is skipped with the reason if it is not installed", async () => {
    vi.stubEnv("SKEIN_REAL_AGENTS", undefined);
    await expect(groundOf(agent, context)).rejects.toThrow("skipped: real agents are installed by npm run");
    vi.stubEnv("SKEIN_REAL_AGENTS", newFolder());
    await expect(groundOf(agent, context)).rejects.toThrow(`skipped: ${agent.package} is not installed`);
  });

  test("is installed in the one tested version", () => {
    const read = (file: string) => JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8"));
    const version = read("package.json").dependencies[agent.package];
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(read("package-lock.json").packages[`node_modules/${agent.package}`].version).toBe(version);
  });
});

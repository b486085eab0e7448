import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/**
 * The slowest files, in this order: they start first, so that all workers end at about the same time. Other files
 * follow by size, and the unit tests next to the source come last.
 */
const longest = [
  "crash/acp/gateway",
  "e2e/acp-agent",
  "public/attacked",
  "public/health",
  "e2e/acp-runtime-stops",
  "crash/runs/family-kill",
  "crash/acp/partners",
  "crash/gateway-kill",
  "contract/differential",
  "soak/gateway-soak",
  "e2e/acp-agent-process",
  "public/library-types",
  "public/erase",
  "public/backup",
  "crash/runs/kill",
  "public/leftovers",
  "public/adoption",
  "public/xray",
  "crash/upkeep",
  "public/reload",
  "crash/acp/kill",
  "public/tiny-chunks",
  "e2e/method-walk",
  "e2e/acp-joined-editors",
  "e2e/acp-runtime-failures",
  "e2e/talking",
  "public/one-policy",
  "public/lost-input",
  "contract/files",
  "e2e/acp-joined",
  "contract/tail",
  "e2e/acp-agent-spawned",
  "growth",
  "e2e/mcp-stdio",
  "crash/gateway-stops",
  "public/run-owner",
  "crash/working-set",
  "crash/family-attacked-again",
];

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bySize = await super.sort(files);
    return bySize.toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  if (place !== -1) return place;
  return longest.length + (moduleId.includes("/test/") ? 0 : 1);
}

import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/**
 * The slowest files, in this order. They start first so that all workers finish at about the same time. Other files
 * follow by size, and the unit tests next to the source come last.
 */
const longest = [
  "test/crash/acp/gateway",
  "test/crash/gateway-kill",
  "test/crash/runs/family-kill",
  "test/crash/acp/partners",
  "test/console/messages",
  "test/console/every-view",
  "test/console/views",
  "test/console/session",
  "test/console/approvals",
  "test/e2e/acp-runtime-stops",
  "test/public/attacked",
  "test/public/leftovers",
  "test/public/health",
  "test/crash/runs/kill",
  "test/soak/gateway-soak",
  "test/e2e/acp-agent-process",
  "test/public/library-types",
  "test/crash/acp/kill",
  "src/agents/mcp/stdio",
  "test/public/reload",
  "test/contract/differential",
  "test/contract/conformance",
  "test/crash/postgres",
  "test/public/xray",
  "test/e2e/acp-runtime-failures",
  "test/e2e/acp-agent",
  "test/crash/upkeep",
  "test/growth",
  "test/public/overflow",
  "test/e2e/method-walk",
  "test/e2e/acp-joined-editors",
  "src/agents/process/warden",
  "test/public/erase",
  "test/public/backup",
  "test/public/lost-input",
  "test/e2e/acp-joined",
  "test/e2e/mcp-stdio",
  "test/crash/gateway-stops",
  "test/e2e/acp-runtime-permissions",
  "test/e2e/start",
  "test/architecture/surface",
  "test/crash/mcp-servers",
  "test/contract/tail",
  "test/e2e/talking",
  "test/e2e/mcp-conformance",
  "test/public/tiny-chunks",
  "src/agents/models/captured-requests",
  "test/crash/processes",
  "test/scale",
];

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bySize = await super.sort(files);
    return bySize.toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = longest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
  if (place !== -1) return place;
  return longest.length + (moduleId.includes("/test/") ? 0 : 1);
}

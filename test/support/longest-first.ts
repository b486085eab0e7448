import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/**
 * The files that take longest, in this order: they start first, so that all workers end at about the same time. Those that are not
 * listed follow by size, and the unit tests next to the source come last.
 */
const longest = ["test/crash/gateway-kill", "test/soak/gateway-soak"];

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bySize = await super.sort(files);
    return bySize.toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}

function placeOf({ moduleId, project }: TestSpecification): number {
  const place = longest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
  if (place !== -1) return place;
  return longest.length + (project.config.isolate ? 0 : 1);
}

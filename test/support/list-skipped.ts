import type { Reporter, TestCase, TestModule } from "vitest/node";
import { missingBrowser } from "../../scripts/find-browser.ts";

/** Lists a run's skipped tests when it ends, each with the reason. */
export default class ListSkipped implements Reporter {
  onTestRunEnd(testModules: readonly TestModule[]): void {
    const skipped = testModules.flatMap((module) => [...module.children.allTests("skipped")]);
    const byReason = Map.groupBy(skipped, reasonOf);
    for (const [reason, tests] of byReason) {
      process.stdout.write(`\nskipped (${tests.length}): ${reason}\n`);
      for (const { module, fullName } of tests)
        process.stdout.write(`  ${module.relativeModuleId} > ${fullName}\n`);
    }
  }
}

/**
 * A test that is skipped while it runs provides a note. A test that should have run but did not belongs to a suite
 * whose setup failed. The others have a `skipIf` or `runIf` that depends on the machine.
 */
function reasonOf(test: TestCase): string {
  const result = test.result();
  const note = result.state === "skipped" ? result.note : undefined;
  if (note === undefined && test.options.mode !== "skip") return "the setup of their suite failed";
  if (test.project.config.testNamePattern !== undefined) return "not selected by their name";
  if (test.module.relativeModuleId.startsWith("test/console/")) return missingBrowser;
  if (test.project.name === "postgres") return "they read or write files in a folder";
  return note ?? `not possible on this machine (${process.platform})`;
}

import type { Reporter, TestCase, TestModule } from "vitest/node";
import { missingBrowser } from "../../scripts/find-browser.ts";

/** Prints the duration of the browser tests when a run ends, and lists its skipped tests, each with the reason. */
export default class ListSkipped implements Reporter {
  onTestRunEnd(testModules: readonly TestModule[]): void {
    const consoleModules = testModules.filter(({ relativeModuleId }) =>
      relativeModuleId.startsWith(consoleFolder),
    );
    if (consoleModules.length > 0) process.stdout.write(`\n${describeDuration(consoleModules)}\n`);
    const skipped = testModules.flatMap((module) => [...module.children.allTests("skipped")]);
    const byReason = Map.groupBy(skipped, reasonOf);
    for (const [reason, tests] of byReason) {
      process.stdout.write(`\nskipped (${tests.length}): ${reason}\n`);
      for (const { module, fullName } of tests)
        process.stdout.write(`  ${module.relativeModuleId} > ${fullName}\n`);
    }
  }
}

const consoleFolder = "test/console/";

/** The sum over all files, which run next to each other and next to those of other projects. */
function describeDuration(modules: readonly TestModule[]): string {
  const ms = modules.map((module) => module.diagnostic().duration).reduce((sum, each) => sum + each, 0);
  const files = modules.length === 1 ? "file" : "files";
  return `console tests: ${(ms / 1000).toFixed(1)} s in ${modules.length} ${files}`;
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
  if (test.module.relativeModuleId.startsWith(consoleFolder)) return missingBrowser;
  if (test.project.name === "postgres") return "they read or write files in a folder";
  return note ?? `not possible on this machine (${process.platform})`;
}

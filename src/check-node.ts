/**
 * Throws before anything else of the package is evaluated on a Node that cannot run it. Each entry imports this
 * first, so that the reader gets a sentence and not the syntax or module error of whatever fails first. Browsers, which load the
 * client, have no Node version and pass.
 */

const needed = 24;
const running = (globalThis as Partial<typeof globalThis>).process?.versions?.node;

if (running !== undefined && Number(running.split(".")[0]) < needed) {
  const error = new Error(
    `skein needs Node ${needed} or newer, and this is Node ${running}. Install a newer one from https://nodejs.org.`,
  );
  // The place in this file tells nobody anything.
  error.stack = `Error: ${error.message}`;
  throw error;
}

export {};

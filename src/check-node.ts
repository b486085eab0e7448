/**
 * Throws before anything else of the package is evaluated on a Node that cannot run it. Each entry but the client's imports this
 * first, so that the reader gets a sentence and not the syntax or module error of whatever fails first.
 */

const needed = 24;
const running = process.versions.node;

if (Number(running.split(".")[0]) < needed) {
  const error = new Error(`skein needs Node ${needed} or newer, and this is Node ${running}.`);
  // The place in this file tells nobody anything.
  error.stack = `Error: ${error.message}`;
  throw error;
}

export {};

/** An argument that a tool cannot take. Every surface shows it as a refusal. */
export class ToolInputError extends Error {
  readonly code = "invalid_arguments";
  readonly path: string;

  constructor(message: string, path: string) {
    super(message);
    this.name = "ToolInputError";
    this.path = path;
  }
}

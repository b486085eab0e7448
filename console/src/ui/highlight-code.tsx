import type { Element, Root, Text } from "hast";
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import type { ReactNode } from "react";
import "./highlight.css";

const lowlight = createLowlight({
  bash,
  css,
  diff,
  go,
  java,
  javascript,
  json,
  markdown,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml,
});
lowlight.registerAlias({
  bash: ["sh", "shell", "zsh"],
  javascript: ["js", "jsx"],
  typescript: ["ts", "tsx"],
  xml: ["html"],
  yaml: ["yml"],
  python: ["py"],
});

/** Code with syntax highlighting. Code in an unknown language stays plain. */
export function highlight(text: string, language: string): ReactNode {
  const name = language.trim().split(/\s/, 1)[0]?.toLowerCase() ?? "";
  if (!lowlight.registered(name)) return text;
  return renderNodes(lowlight.highlight(name, text).children);
}

function renderNodes(nodes: Root["children"] | Element["children"]): ReactNode {
  return nodes.map((node, index) => {
    if (node.type === "text") return (node as Text).value;
    if (node.type !== "element") return null;
    const classes = (node.properties.className as readonly string[] | undefined) ?? [];
    return (
      <span key={index} className={classes.join(" ")}>
        {renderNodes(node.children)}
      </span>
    );
  });
}

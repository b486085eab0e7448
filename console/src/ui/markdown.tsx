import type { Token, Tokens } from "marked";
import { lexer } from "marked";
import type { ReactNode } from "react";
import { Fragment, memo, useMemo } from "react";
import { CodeBlock } from "./code-block.tsx";
import styles from "./markdown.module.css";
import { plainText } from "./plain-text.ts";

/**
 * Markdown of models and strangers. Tokens become elements; there is no path from text to HTML, remote images become
 * links, and links open only http, https and mail addresses.
 */
export const Markdown = memo(function Markdown({
  text,
  isOpen = false,
}: {
  readonly text: string;
  /** The text still grows: its last code block is not closed, and is not highlighted. */
  readonly isOpen?: boolean;
}) {
  const blocks = useMemo(() => splitBlocks(text), [text]);
  return (
    <div className={styles.prose}>
      {blocks.map((block, index) => (
        // Blocks only grow at the end, so the position names a block while the text is written.
        <Block key={index} raw={block.raw} isOpen={isOpen && index === blocks.length - 1} />
      ))}
    </div>
  );
});

/** Texts beyond this are shown as they are: parsing them would hold up the page. */
const longestMarkdown = 200_000;

function splitBlocks(text: string): readonly { readonly raw: string }[] {
  if (text.length > longestMarkdown) return [{ raw: text }];
  return lexer(text).filter(({ type }) => type !== "space");
}

/** Memoized by its source, so that a growing answer renders its last block alone. */
const Block = memo(function Block({ raw, isOpen }: { readonly raw: string; readonly isOpen: boolean }) {
  if (raw.length > longestMarkdown) return <pre className={styles.long}>{plainText(raw)}</pre>;
  return <>{lexer(raw).map((token, index) => renderBlock(token, index, isOpen))}</>;
});

function renderBlock(token: Token, key: number, isOpen: boolean): ReactNode {
  switch (token.type) {
    case "space":
      return null;
    case "heading": {
      const Heading = `h${Math.min(6, (token as Tokens.Heading).depth + 2)}` as "h3";
      return <Heading key={key}>{renderInline(token.tokens)}</Heading>;
    }
    case "paragraph":
      return <p key={key}>{renderInline(token.tokens)}</p>;
    case "text":
      return (
        <Fragment key={key}>
          {token.tokens === undefined ? plainText(token.text) : renderInline(token.tokens)}
        </Fragment>
      );
    case "code": {
      const { text, lang } = token as Tokens.Code;
      return (
        <CodeBlock
          key={key}
          text={text}
          language={lang ?? ""}
          isOpen={isOpen && !/\n\s*(?:```|~~~)\s*$/.test(token.raw)}
        />
      );
    }
    case "blockquote":
      return <blockquote key={key}>{renderBlocks(token.tokens, isOpen)}</blockquote>;
    case "list": {
      const { ordered, start, items } = token as Tokens.List;
      const List = ordered ? "ol" : "ul";
      return (
        <List key={key} {...(ordered && start !== "" && start !== 1 ? { start: Number(start) } : {})}>
          {items.map((item, index) => (
            <li key={index}>
              {item.task && (
                <input
                  type="checkbox"
                  checked={item.checked === true}
                  disabled
                  aria-label={item.checked === true ? "done" : "to do"}
                />
              )}
              {renderBlocks(item.tokens, isOpen)}
            </li>
          ))}
        </List>
      );
    }
    case "table":
      return renderTable(token as Tokens.Table, key);
    case "hr":
      return <hr key={key} />;
    default:
      return <p key={key}>{plainText(token.raw)}</p>;
  }
}

function renderBlocks(tokens: readonly Token[] | undefined, isOpen: boolean): ReactNode {
  return (tokens ?? []).map((token, index) => renderBlock(token, index, isOpen));
}

function renderTable({ header, rows, align }: Tokens.Table, key: number): ReactNode {
  const side = (index: number) => (align[index] === null ? {} : { "data-align": align[index] });
  return (
    <div key={key} className={styles.table}>
      <table>
        <thead>
          <tr>
            {header.map((cell, index) => (
              <th key={index} {...side(index)}>
                {renderInline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, index) => (
                <td key={index} {...side(index)}>
                  {renderInline(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function renderInline(tokens: readonly Token[] | undefined): ReactNode {
  return (tokens ?? []).map((token, key) => {
    switch (token.type) {
      case "strong":
        return <strong key={key}>{renderInline(token.tokens)}</strong>;
      case "em":
        return <em key={key}>{renderInline(token.tokens)}</em>;
      case "del":
        return <del key={key}>{renderInline(token.tokens)}</del>;
      case "codespan":
        return <code key={key}>{plainText(token.text)}</code>;
      case "br":
        return <br key={key} />;
      case "link":
        return (
          <SafeLink key={key} href={token.href}>
            {renderInline(token.tokens)}
          </SafeLink>
        );
      case "image":
        return (
          <SafeLink key={key} href={token.href}>
            {plainText(token.text === "" ? token.href : token.text)}
          </SafeLink>
        );
      case "escape":
      case "text":
        return (
          <Fragment key={key}>
            {"tokens" in token && token.tokens !== undefined
              ? renderInline(token.tokens)
              : plainText(unescapeEntities(token.text))}
          </Fragment>
        );
      default:
        return <Fragment key={key}>{plainText(token.raw)}</Fragment>;
    }
  });
}

function SafeLink({ href, children }: { readonly href: string; readonly children: ReactNode }) {
  if (!/^(?:https?:|mailto:)/i.test(href)) return <>{children}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={plainText(href)}>
      {children}
    </a>
  );
}

const entities: Record<string, string> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
};

function unescapeEntities(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => entities[entity] ?? entity);
}

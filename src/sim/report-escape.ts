// Text in HTML and SVG: nothing that a trace or a file name says becomes markup.

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Fit for element content and for quoted attributes. Control characters but line feed and tab become `?`. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (mark) => ENTITIES[mark]!).replace(/(?![\n\t])\p{Cc}/gu, '?');

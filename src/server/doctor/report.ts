// Findings as people read them, one check after the other, and as machines do.
import { CHECKS } from './checks/index.js';
import type { Finding, FindingStatus } from './finding.js';

const MARKS: Readonly<Record<FindingStatus, string>> = { ok: '✓', failed: '✗', skipped: '–' };

export interface DoctorReport {
  /** Nothing failed. */
  readonly ok: boolean;
  readonly counts: Readonly<Record<FindingStatus, number>>;
  readonly findings: readonly Finding[];
}

export function reportOf(findings: readonly Finding[]): DoctorReport {
  const counts = { ok: 0, failed: 0, skipped: 0 };
  for (const { status } of findings) counts[status]++;
  return { ok: counts.failed === 0, counts, findings };
}

/** Lines: the question of each check, and below it who was looked at. */
export function reportText({ counts, findings }: DoctorReport): string {
  const sections = CHECKS.map(({ code, title }) => {
    const own = findings.filter((finding) => finding.code === code);
    const lines = own.flatMap(({ status, subject, seen, fix }) => [
      `  ${MARKS[status]} ${printable(subject)}: ${printable(seen)}`,
      ...(fix === null ? [] : [`      fix: ${printable(fix)}`]),
    ]);
    return [`${code}: ${title}`, ...lines].join('\n');
  });
  const all = `${counts.ok} fine, ${counts.failed} failed, ${counts.skipped} not applicable`;
  return [...sections, counts.failed === 0 ? `✓ ${all}` : `✗ ${all}`].join('\n');
}

/** What others sent must not move the terminal's cursor. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '?');
}

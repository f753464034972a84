// Whether the masters' HTTP answers: without it evidence of the store is never confirmed and fades.
import { type Check, failed, ok } from '../finding.js';

export const masterHttp: Check = {
  code: 'master-http',
  title: "the masters' HTTP answers",
  run: ({ store }) =>
    (store?.masters ?? []).map(({ endpoint, status, httpFault }) => {
      const { events, http } = endpoint;
      if (http === null) {
        return failed(
          events,
          'its HTTP is not configured: nothing confirms what its events say, and evidence fades',
          "Set the master's http to its admin port (--metrics_port, default 9003).",
        );
      }
      if (status !== null) return ok(http, 'answers');
      return failed(
        http,
        httpFault ?? 'does not answer',
        "Set the master's http to its admin port (--metrics_port, default 9003), not the RPC port; see whether it runs.",
      );
    }),
};

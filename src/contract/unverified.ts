// What is said wherever a derived contract is met and nobody has allowed it.

export const UNVERIFIED_TEXT =
  'The contract was derived from public facts and no engine has vouched for it. Publish it by the worker extension, or allow it: allowUnverifiedContract.';

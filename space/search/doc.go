// Package search finds passages of text in a folder tree by the words of a query, in any language that is written with spaces or
// in Chinese, Japanese or Korean.
//
// Words: a term is what is compared. Text is normalised (NFKC, lower case); a run of letters or digits is one term, with common
// English endings removed; a run of Chinese, Japanese or Korean characters gives its overlapping pairs, so that a word of two
// characters is found inside any sentence. A match is one line of a file. Terms and queries go through the same function.
//
// Ranking: files by BM25 (Robertson and Zaragoza, 2009; k1 = 1.2, b = 0.75) over the query's terms, lines by the weight of the
// terms in and around them; a line that holds the query as written comes first. A query of function words only is searched as
// written.
//
// There is no index: every search reads every text file, so a file written a moment ago is found. Hidden folders, node_modules,
// symbolic links, files above 4 MiB and files that are no UTF-8 text are passed over and counted. Safe for concurrent use.
package search

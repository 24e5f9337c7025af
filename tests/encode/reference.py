"""A second, slow and plain implementation of key and barcode, written from the paper alone."""


def plain_key(codes):
    """Return the key of one 64 x 64 table of semantic codes."""
    total = 0
    factors = [1, 10**6, 10**11]
    table = [[int(v) for v in row] for row in codes]
    for factor in factors:
        half = len(table) // 2
        pooled = []
        for y in range(half):
            row = []
            for x in range(half):
                four = table[2 * y][2 * x] + table[2 * y][2 * x + 1]
                four = four + table[2 * y + 1][2 * x] + table[2 * y + 1][2 * x + 1]
                row.append(four // 4)
            pooled.append(row)
        table = pooled
        total += factor * sum(sum(row) for row in table)
    return total


def plain_barcode(features):
    """Return the barcode of one list of features as a list of 64-bit integers."""
    bits = [0]
    for i in range(1, len(features)):
        bits.append(1 if float(features[i]) >= float(features[i - 1]) else 0)
    while len(bits) % 64:
        bits.append(0)
    words = []
    for start in range(0, len(bits), 64):
        word = 0
        for i in range(64):
            word |= bits[start + i] << i
        words.append(word)
    return words


def plain_codes(model, image):
    """Return codes of one image (3, h, w) in [-1, 1]: layer by layer, word by word."""
    import torch

    x = image[None]
    for layer in model.encoder:
        if hasattr(layer, "block"):
            y = x
            for part in layer.block:
                y = part(y)
            x = x + y
        else:
            x = layer(x)
    words = model.codebook.embedding.weight
    table = []
    for row in range(x.shape[2]):
        codes = []
        for column in range(x.shape[3]):
            distances = [float(((x[0, :, row, column] - w) ** 2).sum()) for w in words]
            codes.append(distances.index(min(distances)))
        table.append(codes)
    return torch.tensor(table)
